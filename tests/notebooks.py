"""Runs cells in a kernel of their own, as a notebook does."""

import re
from contextlib import contextmanager

from jupyter_client.manager import KernelManager


class Notebook:
    """Runs cells, each of which must succeed, or fail if `fails` is set.

    `line` has the texts of the last cell's line that is replaced, as a front end shows them one after the other.
    """

    def __init__(self, client):
        self.client = client
        self.line = []

    def run(self, code, fails=False):
        """The text that the cell prints and displays, with the error if it fails, without its line of progress."""
        said = []
        self.line = []

        def hear(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                said.append(content["text"])
            elif content.get("transient", {}).get("display_id"):
                self.line.append((message["msg_type"], content["data"]["text/plain"]))
            elif message["msg_type"] in ("execute_result", "display_data"):
                said.append(content["data"].get("text/html") or content["data"]["text/plain"])
            elif message["msg_type"] == "error":
                said.append("\n".join(content["traceback"]))

        reply = self.client.execute_interactive(code, output_hook=hear, timeout=300)
        assert (reply["content"]["status"] == "error") == fails, "".join(said)
        return re.sub(r"\x1b\[[\d;]*m", "", "".join(said))


@contextmanager
def started(folder):
    """A notebook whose kernel runs in `folder`, with the magic loaded."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(folder))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=120)
        result = Notebook(client)
        result.run("%load_ext interop\nimport torch.utils.cpp_extension")  # this may report that there is no GPU
        yield result
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
