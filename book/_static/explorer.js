// Select boxes for figures that differ in a few choices; without this, each is unfolded by itself.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".msstab-explorer").forEach((explorer, number) => {
    const knobs = JSON.parse(explorer.dataset.knobs);
    const panels = [...explorer.querySelectorAll(".msstab-panel")];
    const choices = panels.map((panel) => JSON.parse(panel.dataset.choice));
    const bar = document.createElement("div");
    bar.className = "msstab-knobs";
    const boxes = knobs.map((knob, k) => {
      const box = document.createElement("select");
      box.id = `explorer-${number}-${k}`;
      [...new Set(choices.map((choice) => choice[k]))].forEach((part) => box.add(new Option(part)));
      const label = document.createElement("label");
      label.htmlFor = box.id;
      label.textContent = knob;
      bar.append(label, box);
      return box;
    });
    // Says to a screen reader what the new figure shows; sighted readers see the figure.
    const said = document.createElement("p");
    said.className = "msstab-said";
    said.setAttribute("role", "status");
    const show = () => {
      const wanted = boxes.map((box) => box.value);
      panels.forEach((panel, p) => {
        panel.hidden = !choices[p].every((part, k) => part === wanted[k]);
        panel.open = !panel.hidden;
      });
      const shown = panels.find((panel) => !panel.hidden);
      return shown ? shown.querySelector("svg").getAttribute("aria-label") : "Nothing was run for this choice.";
    };
    boxes.forEach((box) => box.addEventListener("change", () => { said.textContent = show(); }));
    explorer.prepend(bar, said);
    explorer.classList.add("msstab-chosen");
    show();
  });
});
