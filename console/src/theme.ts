import { createTheme, type MantineColorsTuple } from "@mantine/core";
import i18next from "i18next";

const brand: MantineColorsTuple = [
  "#effcf9",
  "#d5f5ee",
  "#a9eadd",
  "#75d9c8",
  "#45c2b0",
  "#26a796",
  "#158a7d",
  "#0f766e",
  "#115e59",
  "#134e4a",
];

const dark: MantineColorsTuple = [
  "#e4e7ea",
  "#c3c8cd",
  "#9ba3ab",
  "#727b84",
  "#4b535b",
  "#343a41",
  "#262b31",
  "#1c2025",
  "#15181c",
  "#0e1013",
];

export const theme = createTheme({
  colors: { brand, dark },
  primaryColor: "brand",
  primaryShade: 7,
  autoContrast: true,
  defaultRadius: "md",
  fontSizes: { xs: "0.75rem", sm: "0.8125rem", md: "0.875rem", lg: "1rem", xl: "1.125rem" },
  fontFamily:
    'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif',
  fontFamilyMonospace:
    'ui-monospace, "SF Mono", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  headings: { fontWeight: "600", sizes: { h1: { fontSize: "1.25rem" }, h2: { fontSize: "1.05rem" } } },
  components: {
    ActionIcon: { defaultProps: { variant: "subtle", color: "gray" } },
    Badge: { defaultProps: { tt: "none", fw: 600 } },
    Drawer: { defaultProps: () => ({ closeButtonProps: { "aria-label": i18next.t("close") } }) },
    Modal: { defaultProps: () => ({ closeButtonProps: { "aria-label": i18next.t("close") } }) },
    Table: { defaultProps: { verticalSpacing: 6, horizontalSpacing: "sm" } },
    Tooltip: { defaultProps: { openDelay: 400, withArrow: true } },
  },
});
