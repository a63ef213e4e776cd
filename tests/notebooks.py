"""Runs cells as a notebook does, in a kernel of their own."""

import re
from contextlib import contextmanager

from jupyter_client.manager import KernelManager


class Notebook:
    """Runs cells, each of which must end well unless it is said not to."""

    def __init__(self, client):
        self.client = client

    def run(self, code, fails=False):
        """What the cell prints and displays; of a cell that fails, its error."""
        said = []

        def hear(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                said.append(content["text"])
            elif message["msg_type"] in ("execute_result", "display_data"):
                said.append(content["data"].get("text/html") or content["data"]["text/plain"])
            elif message["msg_type"] == "error":
                said.append("\n".join(content["traceback"]))

        reply = self.client.execute_interactive(code, output_hook=hear, timeout=300)
        assert (reply["content"]["status"] == "error") == fails, "".join(said)
        return re.sub(r"\x1b\[[\d;]*m", "", "".join(said))


@contextmanager
def started(folder):
    """A notebook whose kernel has `folder` for its current one, with the magic loaded."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(folder))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=120)
        result = Notebook(client)
        result.run("%load_ext interop\nimport torch.utils.cpp_extension")  # which may say that there is no GPU
        yield result
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
