// What scrolls sideways can be reached, and so scrolled, with the keyboard.
function reachScrolling() {
  for (const node of document.querySelectorAll("article pre, article .table-wrapper")) {
    if (node.scrollWidth > node.clientWidth) {
      node.tabIndex = 0;
    } else {
      node.removeAttribute("tabindex");
    }
  }
}

addEventListener("load", reachScrolling);
addEventListener("resize", reachScrolling);
