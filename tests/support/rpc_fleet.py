"""A real TVM RPC tracker and real servers on loopback.

`rpc_fleet.py KEY COUNT` prints the tracker's port and the servers' process numbers, and ends when its standard input is
closed.
"""

import sys

from tvm.rpc.server import Server
from tvm.rpc.tracker import Tracker

HOST = "127.0.0.1"


def main(key, count):
    tracker = Tracker(HOST, port=19190, port_end=19990, silent=True)
    servers = [
        Server(HOST, port=20100, port_end=20990, tracker_addr=(HOST, tracker.port), key=key, silent=True)
        for _ in range(int(count))
    ]
    print(tracker.port, *(server.proc._proc.pid for server in servers), flush=True)
    sys.stdin.read()
    for server in servers:
        server.terminate()
    tracker.terminate()


if __name__ == "__main__":
    main(*sys.argv[1:])
