import { Validator } from "@cfworker/json-schema";
import Form from "@rjsf/mantine";
import type { RJSFSchema, UiSchema, ValidatorType } from "@rjsf/utils";
import { useMemo } from "react";
import { ActionButton } from "./ActionButton";

/**
 * The server validates arguments and says what is wrong per field, as it does for a model. Here schemas are only
 * compared with values to choose between alternatives, without generating code: the page's policy forbids that.
 */
const VALIDATOR: ValidatorType = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  isValid: (schema, value, root) => {
    try {
      return new Validator({ ...schema, $defs: (root as RJSFSchema).$defs } as never).validate(value).valid;
    } catch {
      return false;
    }
  },
  rawValidation: () => ({}),
};

type Props = {
  schema: Record<string, unknown>;
  value: Record<string, unknown>;
  onChange: (value: Record<string, unknown>) => void;
  onSubmit: () => void;
  submitLabel: string;
  isBusy: boolean;
};

/** A form made from the schema of a tool. */
export default function SchemaForm({ schema, value, onChange, onSubmit, submitLabel, isBusy }: Props) {
  const uiSchema = useMemo(() => createUiSchema(schema as RJSFSchema), [schema]);
  return (
    <Form
      className="schema-form"
      schema={schema as RJSFSchema}
      uiSchema={uiSchema}
      validator={VALIDATOR}
      formData={value}
      onChange={(event) => onChange((event.formData ?? {}) as Record<string, unknown>)}
      onSubmit={onSubmit}
      noHtml5Validate
      showErrorList={false}
      experimental_defaultFormStateBehavior={{ emptyObjectFields: "populateRequiredDefaults" }}
    >
      <ActionButton type="submit" loading={isBusy} mt="sm">
        {submitLabel}
      </ActionButton>
    </Form>
  );
}

function createUiSchema(schema: RJSFSchema): UiSchema {
  const longTexts = Object.entries(schema.properties ?? {}).filter(
    ([name, property]) =>
      typeof property === "object" &&
      property.type === "string" &&
      /code|text|sql|content|body|markdown/i.test(name),
  );
  const widgets = longTexts.map(([name]) => [name, { "ui:widget": "textarea", "ui:options": { rows: 3 } }]);
  return {
    "ui:title": "",
    "ui:options": { label: false },
    "ui:submitButtonOptions": { norender: true },
    ...Object.fromEntries(widgets),
  };
}
