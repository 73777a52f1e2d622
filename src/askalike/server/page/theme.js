// Applies the chosen colours before anything is drawn, so that a dark page never flashes white. A classic script, on purpose.
(() => {
  const root = document.documentElement;
  let chosen = null;
  try {
    chosen = localStorage.getItem("askalike.theme");
  } catch {
    // Storage may be forbidden; then the system's colours hold.
  }
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
})();
