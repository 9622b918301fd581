// Repairs of the theme's own markup for screen readers; the pages read the same without it.
document.addEventListener("DOMContentLoaded", () => {
  // A label that differs from the visible text hides that text.
  document.querySelectorAll(".search-button__button, .theme-switch-button").forEach((button) => {
    if (button.innerText.trim()) button.removeAttribute("aria-label");
  });
  // The sidebar holds the logo and the contents outside of any landmark.
  document.querySelectorAll(".bd-sidebar-primary .sidebar-primary-items__start").forEach((bar) => {
    bar.setAttribute("role", "navigation");
    bar.setAttribute("aria-label", "Book");
    bar.querySelectorAll("nav:not([aria-label])").forEach((nav) => nav.setAttribute("aria-label", "Chapters"));
  });
  document.querySelectorAll(".citation-list").forEach((list) => list.setAttribute("role", "list"));
  document.querySelectorAll(".citation").forEach((item) => item.setAttribute("role", "listitem"));
});

// What scrolls sideways must be reachable from the keyboard, and nothing else need be.
const reach = new ResizeObserver((changes) => {
  changes.forEach(({ target }) => {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  });
});
addEventListener("DOMContentLoaded", () => {
  const boxes = ".pst-scrollable-table-container, .bd-content .text_html, .bd-content div.math, .bd-content pre";
  document.querySelectorAll(boxes).forEach((box) => reach.observe(box));
});

// Browsers print no backgrounds, and letters meant for a dark one would be pale on paper.
let shown;
addEventListener("beforeprint", () => {
  shown = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
});
addEventListener("afterprint", () => (document.documentElement.dataset.theme = shown));

// A summary under each search result would be read from its page, which files may not do.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
