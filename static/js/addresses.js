// Addresses of this hub, whose public address may have a path: its scripts are at `<path>/static/js/`.
export const PATH = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");

export const inHub = (path) => PATH + path;
