// What the tests ask a page in the browser; each function returns sentences about what is wrong.
window.probes = (() => {
  const name = (element) => {
    const words = (element.getAttribute("aria-label") || element.textContent || "").trim();
    const kind = element.tagName.toLowerCase() + (element.id ? `#${element.id}` : "");
    return `<${kind} class="${element.getAttribute("class") || ""}"> ${words.slice(0, 40)}`;
  };
  // From rgb(0, 114, 178), or from the color(srgb 0 0.45 0.7) of a mixture.
  const channels = (colour) => {
    const found = colour.match(/[\d.]+/g).map(Number);
    return colour.startsWith("color(") ? [...found.slice(0, 3).map((c) => 255 * c), ...found.slice(3)] : found;
  };
  const luminance = ([r, g, b]) =>
    [r, g, b]
      .map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
      .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const contrast = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const shown = (element) => element.checkVisibility({ visibilityProperty: true });
  const background = (element) => {
    for (let node = element; node; node = node.parentElement) {
      const colour = channels(getComputedStyle(node).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };

  return {
    // Everything that a page still prepares once it is loaded.
    async settled() {
      if (window.MathJax?.startup?.promise) await MathJax.startup.promise;
      await document.fonts.ready;
      const frame = () => new Promise((done) => requestAnimationFrame(done));
      const size = () => {
        const article = document.querySelector("article")?.getBoundingClientRect();
        return `${document.documentElement.scrollWidth} ${article?.width} ${article?.height}`;
      };
      // The sidebars slide in and out for some frames; what observes sizes hears of it after.
      for (let still = 0, before = ""; still < 6; before = size()) {
        await frame();
        still = size() === before ? still + 1 : 0;
      }
      await Promise.allSettled(document.getAnimations().map((one) => one.finished));
      await frame();
    },

    // Elements that make the page wider than the window.
    wide() {
      const width = document.documentElement.clientWidth;
      if (document.documentElement.scrollWidth <= width) return [];
      const over = [...document.querySelectorAll("body *")].filter(
        (element) => shown(element) && element.getBoundingClientRect().right > width + 1,
      );
      return [`${document.documentElement.scrollWidth} px wide`, ...over.slice(0, 5).map(name)];
    },

    // Formulas that are not set, or set with an error.
    formulas() {
      const all = [...document.querySelectorAll(".math")];
      const bad = all.filter(
        (formula) => !formula.querySelector("mjx-container") || formula.querySelector("mjx-merror"),
      );
      return bad.map((formula) => `not set: ${formula.textContent.slice(0, 80)}`);
    },

    // Letters in figures, drawn as outlines, which axe takes for shapes.
    letters() {
      const bad = new Set();
      for (const letter of document.querySelectorAll('svg use[*|href*="-DejaVu"], svg use[*|href*="-Cmr"]')) {
        const ratio = contrast(channels(getComputedStyle(letter).fill), background(letter));
        if (ratio < 4.5) {
          const figure = letter.closest("svg").getAttribute("aria-label").slice(0, 60);
          bad.add(`${getComputedStyle(letter).fill} has ${ratio.toFixed(1)}:1 in: ${figure}`);
        }
      }
      return [...bad];
    },

    // Text that would be pale on paper: browsers print no backgrounds.
    pale() {
      const bad = new Set();
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !shown(element)) continue;
        if (element.closest("script, style, mjx-assistive-mml, .visually-hidden")) continue;
        const colour = getComputedStyle(element).color;
        if (contrast(channels(colour), [255, 255, 255]) < 4.5) bad.add(`${colour}: ${name(element)}`);
      }
      return [...bad].slice(0, 8);
    },

    // Parts of the frame that are of no use on paper.
    frame() {
      const parts = ".bd-sidebar-primary, .bd-sidebar-secondary, .bd-header-article, #pst-back-to-top";
      return [...document.querySelectorAll(parts)].filter(shown).map(name);
    },

    // How the element with the focus looks, to be compared with how it looks without.
    look(element) {
      const { outlineStyle, outlineWidth, outlineColor, boxShadow, borderColor, backgroundColor, color } =
        getComputedStyle(element);
      const outline = outlineStyle === "none" ? "" : `${outlineStyle} ${outlineWidth} ${outlineColor}`;
      return [outline, boxShadow, borderColor, backgroundColor, color].join("|");
    },

    // What has the focus, whether that can be seen, and whether it is within the window.
    focus() {
      const element = document.activeElement;
      if (element === document.body || element === null) return null;
      const box = element.getBoundingClientRect();
      const focused = this.look(element);
      const inside = box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
      element.blur();
      const changed = focused !== this.look(element);
      element.focus({ preventScroll: true });
      return { name: name(element), changed, inside: inside && box.width > 0, tag: element.tagName };
    },
  };
})();
