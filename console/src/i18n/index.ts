import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { en } from "./en";

export const LANGUAGES = { en: "English", zh: "中文" } as const;
export type LanguageCode = keyof typeof LANGUAGES;
const STORAGE_KEY = "opposable-language";

/** Start with the language that was chosen before, else that of the browser. */
export async function startI18n(): Promise<void> {
  await i18next.use(initReactI18next).init({
    lng: "en",
    fallbackLng: "en",
    resources: { en: { translation: en } },
    interpolation: { escapeValue: false },
  });
  const stored = localStorage.getItem(STORAGE_KEY);
  await setLanguage((stored ?? navigator.language).startsWith("zh") ? "zh" : "en");
}

/** Show the console in a language, and remember it. */
export async function setLanguage(language: LanguageCode, remember = false): Promise<void> {
  if (language === "zh" && !i18next.hasResourceBundle("zh", "translation")) {
    i18next.addResourceBundle("zh", "translation", (await import("./zh")).zh);
  }
  await i18next.changeLanguage(language);
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  if (remember) localStorage.setItem(STORAGE_KEY, language);
}
