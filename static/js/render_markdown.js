// Renders the Markdown that the page came with. Pages load it with `blocking="render"`, so that the texts do not move.
import { renderWithin } from "./markdown.js";

renderWithin(document);
