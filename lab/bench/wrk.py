"""The load by `wrk`: compiled, so that the server is the bottleneck and not the load."""

import json
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from typing import TypedDict

from lab.bench.targets import COUNTER_DIGITS, Template

SCRIPT = """
local heads = { %(heads)s }
local tails = { %(tails)s }
local threads = {}
number, wrong, first_wrong = 0, 0, ""

setup = function(thread) table.insert(threads, thread) end

request = function()
  number = number + 1
  local i = number %% #heads + 1
  return heads[i] .. string.format("%%0%(digits)dd", number) .. tails[i]
end

response = function(status, headers, body)
  if status ~= 200 or not string.find(body, %(answered)s, 1, true) then
    if wrong == 0 then first_wrong = status .. " " .. string.sub(body, 1, 300) end
    wrong = wrong + 1
  end
end

done = function(summary, latency)
  local wrong, first = 0, ""
  for _, thread in ipairs(threads) do
    wrong = wrong + thread:get("wrong")
    first = thread:get("first_wrong")
  end
  local e = summary.errors
  local broken = e.connect + e.read + e.write + e.timeout
  io.write(string.format("\\nSAID %%d %%d %%.3f %%.3f %%d %%d %%s\\n", summary.requests, summary.duration,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, wrong, broken, first))
end
"""


class Said(TypedDict):
    """A generator's findings; see `lab.bench.load.Run`."""

    asks_per_s: float
    p50_ms: float
    p99_ms: float
    errors: int
    first_error: str
    generator_cpu: float


def is_there() -> bool:
    """Whether this machine has it."""
    return shutil.which("wrk") is not None


def run(templates: Sequence[Template], port: int, connections: int, seconds: int) -> Said:
    """Ask with one thread; every answer is checked."""
    values = {
        "heads": ", ".join(json.dumps(template.head) for template in templates),
        "tails": ", ".join(json.dumps(template.tail) for template in templates),
        "digits": COUNTER_DIGITS,
        "answered": json.dumps(templates[0].answered),
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(SCRIPT % values)
        script.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", script.name]
        done = subprocess.run([*command, f"http://127.0.0.1:{port}/"], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = next(line for line in done.stdout.splitlines() if line.startswith("SAID "))
    asks, took_us, p50, p99, wrong, broken, *first = line.removeprefix("SAID ").split(" ", 6)
    took_s = int(took_us) / 1e6
    return {
        "asks_per_s": (int(asks) - int(wrong)) / took_s,
        "p50_ms": float(p50),
        "p99_ms": float(p99),
        "errors": int(wrong) + int(broken),
        "first_error": "".join(first),
        "generator_cpu": (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / took_s,
    }
