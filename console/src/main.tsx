import "./styles/first.css";
import "./styles/app.css";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "./api/queries";
import { startI18n } from "./i18n";
import { getNonce } from "./nonce";
import { router } from "./router";
import { theme } from "./theme";

// Some libraries that create style elements read the nonce of the page here.
Object.assign(window, { __webpack_nonce__: getNonce() });

await startI18n();
createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={getNonce}>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
