export type Theme = "system" | "light" | "dark";

const PLACE = "depute.theme";
const THEMES: readonly Theme[] = ["system", "light", "dark"];

export function readTheme(): Theme {
  const stored = localStorage.getItem(PLACE);
  return THEMES.find((theme) => theme === stored) ?? "system";
}

/** Applies a theme, and stores it for the next visit. */
export function applyTheme(theme: Theme): void {
  localStorage.setItem(PLACE, theme);
  document.documentElement.dataset.theme = theme;
}
