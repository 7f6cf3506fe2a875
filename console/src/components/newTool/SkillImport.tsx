import { TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { ImportForm } from "./ImportForm";

/** Add the skills of a folder of the server. */
export function SkillImport() {
  const { t } = useTranslation();
  const [path, setPath] = useState("");
  return (
    <ImportForm
      createBody={() => ({ path })}
      path="skill"
      isChanged={path !== ""}
      isIncomplete={!path.trim()}
    >
      <TextInput
        label={t("newTool.folder")}
        description={t("newTool.folderText")}
        placeholder="skills/report"
        value={path}
        onChange={(event) => setPath(event.currentTarget.value)}
      />
    </ImportForm>
  );
}
