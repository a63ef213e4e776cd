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

// The theme opens its drawers with labels of hidden checkboxes. The icon in such a label becomes a button for the
// keyboard and for screen readers, because ARIA allows no role for the label itself. Browsers differ in whether a click
// on such an icon counts for its label, so the icon clicks on the checkbox; the rest of the label does so as before.
function makeButton(icon) {
  const box = icon.closest("label").control;
  const say = () => icon.setAttribute("aria-expanded", box.checked);
  icon.tabIndex = 0;
  icon.setAttribute("role", "button");
  icon.setAttribute("aria-label", box.getAttribute("aria-label"));
  const toggle = (event) => {
    event.preventDefault();
    box.click();
  };
  icon.addEventListener("click", toggle);
  icon.addEventListener("keydown", (event) => (event.key === "Enter" || event.key === " ") && toggle(event));
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
      [...box.labels].map((label) => label.querySelector(".icon")).find((icon) => icon && shown(icon))?.focus();
    }
  });
}

addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("label[for] .icon").forEach(makeButton);
  for (const [id, drawer] of [["__navigation", ".sidebar-drawer"], ["__toc", ".toc-drawer"]]) {
    keepFocus(document.getElementById(id), document.querySelector(drawer));
  }
});
