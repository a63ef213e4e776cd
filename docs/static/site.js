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

// The theme opens its drawers with labels of hidden checkboxes. The keyboard reaches these labels as buttons.
function makeButton(label) {
  const box = label.control;
  const say = () => label.setAttribute("aria-expanded", box.checked);
  label.tabIndex = 0;
  label.setAttribute("role", "button");
  if (!label.textContent.trim()) {
    label.setAttribute("aria-label", box.getAttribute("aria-label"));
  }
  label.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      label.click();
    }
  });
  box.addEventListener("change", say);
  say();
}

// A drawer takes the focus when it opens. It closes at Escape, at a link in it, and when the focus leaves it.
function keepFocus(box, drawer) {
  const shown = (node) => node.offsetWidth && node.tabIndex === 0;
  const close = () => box.checked && box.click();
  box.addEventListener("change", () => box.checked && [...drawer.querySelectorAll("a")].find(shown)?.focus());
  drawer.addEventListener("click", (event) => event.target.closest("a") && close());
  drawer.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !drawer.contains(event.relatedTarget)) {
      close();
    }
  });
  drawer.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      close();
      [...box.labels].find(shown)?.focus();
    }
  });
}

addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("label[for]:not(.overlay)").forEach(makeButton);
  for (const [id, drawer] of [["__navigation", ".sidebar-drawer"], ["__toc", ".toc-drawer"]]) {
    keepFocus(document.getElementById(id), document.querySelector(drawer));
  }
});
