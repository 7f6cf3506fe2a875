// A module of @rjsf/core for its own tests names this validator; it generates code, which the page's policy forbids.
export default undefined;
