// The page of one ask: the thumbs for its answer.
import { startRatings } from "./rating.js";

startRatings(document.querySelector("main"));
