"""New processes with torch, NumPy and interop imported already, because the imports would take most of their time.

A server that has imported them forks for each process. `multiprocessing` has such a server too, but its children exit
by `os._exit`, and many tests are about the end of the interpreter. Here the child runs its code as ``python -c`` does.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile


class ForkServer:
    """The server, which starts when a test first needs it."""

    def __init__(self):
        self.process = None

    def run(self, code, path, seconds):
        """Runs `code` in a new process for at most `seconds`, with the folders `path` first in `sys.path`."""
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
            # Closing the pipe is not enough: processes that tests have left behind may hold it open.
            self.process.stdin.write("null\n")
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()


def serve(requests, answers):
    """Forks for each line of `requests`. Returns the request in the child, and None in the server at the end."""
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
    """Sets up this process as the request says."""
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

    # Duplicates, because the children use descriptors 0 to 2 for their own files.
    channels = [os.fdopen(os.dup(number), mode) for number, mode in enumerate("rw")]
    wanted = serve(*channels)
    if wanted:
        become(wanted)
        source = wanted["code"].encode()
        for name in [name for name in globals() if not name.startswith("__") and name not in ("ctypes", "source")]:
            del globals()[name]
        # Python itself calls this for -c: a traceback has no frame of this file, and SystemExit works as usual.
        raise SystemExit(-ctypes.pythonapi.PyRun_SimpleString(source))
