/**
 * Elements from data. Strings become text nodes or attribute values, never markup, so that an item
 * called `<img onerror=…>` is only an odd name. Nothing here or elsewhere uses innerHTML.
 *
 *   h("a", { href: "#/", class: "back" }, "All queries")
 *   s("circle", { cx: 3, cy: 4, r: 2 })
 */

const SVG = "http://www.w3.org/2000/svg";

/** Return an HTML element. Attributes that are null or false are left out. */
export function h(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** Return an SVG element. */
export function s(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/**
 * Make the children of `parent` look like `children`, changing as little as possible.
 *
 * A page that is redrawn every two seconds must not steal the focus, the selection or the scroll
 * position, so elements that stay are kept and only their attributes and texts are changed.
 */
export function patch(parent, ...children) {
  const wanted = nodes(children).map((child) =>
    typeof child === "object" ? child : document.createTextNode(String(child)),
  );
  const present = [...parent.childNodes];
  wanted.forEach((node, i) => {
    const old = present[i];
    if (old === undefined) parent.append(node);
    else if (old.nodeName !== node.nodeName) old.replaceWith(node);
    else if (old.nodeType === Node.TEXT_NODE) setText(old, node.data);
    else morph(old, node);
  });
  present.slice(wanted.length).forEach((old) => old.remove());
}

function setText(node, text) {
  if (node.data !== text) node.data = text;
}

function morph(old, wanted) {
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  patch(old, ...wanted.childNodes);
}
