// Shows the loads of one page at a time; without this script all are shown, one below the other.
const pages = document.querySelectorAll(".page");
const buttons = document.querySelectorAll("nav button");
function show(name) {
  pages.forEach((page) => { page.hidden = page.id !== "page-" + name; });
  buttons.forEach((button) => { button.setAttribute("aria-pressed", button.dataset.page === name); });
}
buttons.forEach((button) => button.addEventListener("click", () => show(button.dataset.page)));
if (buttons.length > 0) show(buttons[buttons.length - 1].dataset.page);
