"""The JSON Schema of tuned logs, made from the types that read them; `python -m autotune.schema` prints it.

It is shipped as `autotune/tuned-log-1.schema.json`. A field that is added with a default leaves the version as it is:
older logs stay valid, and older versions of this project pass it over. Any other change takes the next version.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from autotune.tuned_log import SCHEMA, TunedLog

FILE = Path(__file__).with_name(f"{SCHEMA.replace('/', '-')}.schema.json")


def tuned_log_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12, of `TunedLog`; times are in seconds."""
    made = msgspec.json.schema(TunedLog)
    made["$defs"]["TunedLog"]["properties"]["schema"] = {"const": SCHEMA}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:kernel-autotune:{SCHEMA}",
        "title": f"Tuned log of kernel-autotune, {SCHEMA}",
        **made,
    }


def schema_text() -> bytes:
    """What is shipped."""
    return msgspec.json.format(msgspec.json.encode(tuned_log_schema(), order="sorted"), indent=1) + b"\n"


if __name__ == "__main__":
    sys.stdout.buffer.write(schema_text())
