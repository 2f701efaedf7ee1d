"""Devices that TVM's RPC reaches: a tracker lends servers, a worker here runs candidates on the one it got."""
