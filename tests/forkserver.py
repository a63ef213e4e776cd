"""New processes in which torch, NumPy and interop are imported already, which is what most of their time would go to.

A server that has imported them forks for each. `multiprocessing` has such a server too, but its children leave by
`os._exit`, and many tests are about how an interpreter ends: here the child runs its code as ``python -c`` does.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile


class ForkServer:
    """The server, which is started when it is first needed."""

    def __init__(self):
        self.process = None

    def run(self, code, path, seconds):
        """Runs `code` in a new process for so long, with the folders `path` before all that modules are found in."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error:
            files = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, error)]
            request = {"code": code, "path": path, "seconds": seconds, "files": files}
            request |= {"environment": dict(os.environ), "folder": os.getcwd()}
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            status = int(self.process.stdout.readline())
            out.seek(0)
            error.seek(0)
            return subprocess.CompletedProcess(["forked"], status, out.read(), error.read())

    def stop(self):
        if self.process is not None:
            # Not by the end of the file alone: processes that tests have left behind may hold the pipe open.
            self.process.stdin.write("null\n")
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()


def serve(requests, answers):
    """Forks for each line of `requests`. Returns in the child, with what is asked of it; None at the end."""
    for line in requests:
        request = json.loads(line)
        if request is None:
            break
        child = os.fork()
        if not child:
            requests.close()
            answers.close()
            return request
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        answers.flush()
    return None


def become(request):
    """Makes this process the one that is asked for."""
    null = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate([null, *(os.open(path, os.O_WRONLY) for path in request["files"])]):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path[:0] = request["path"]
    sys.argv = ["-c"]
    signal.alarm(request["seconds"])


if __name__ == "__main__":
    import numpy  # noqa: F401
    import torch  # noqa: F401

    import interop  # noqa: F401

    # Under other numbers than those that the children have for their own.
    channels = [os.fdopen(os.dup(number), mode) for number, mode in enumerate("rw")]
    wanted = serve(*channels)
    if wanted:
        become(wanted)
        source = wanted["code"].encode()
        for name in [name for name in globals() if not name.startswith("__") and name not in ("ctypes", "source")]:
            del globals()[name]
        # What Python itself calls for -c: an exception has no frame of this file, and SystemExit its usual meaning.
        raise SystemExit(-ctypes.pythonapi.PyRun_SimpleString(source))
