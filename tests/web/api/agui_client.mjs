// Runs an agent with the AG-UI client: node agui_client.mjs CLIENT_FOLDER URL. Prints the messages as JSON.
import { createRequire } from "node:module";

const [folder, url] = process.argv.slice(2);
const { HttpAgent } = createRequire(`${folder}/`)("@ag-ui/client");
const agent = new HttpAgent({ url, threadId: "t1" });
const image = { type: "image", source: { type: "data", value: "iVBORw0KGgo=", mimeType: "image/png" } };
agent.addMessage({ id: "m1", role: "user", content: [{ type: "text", text: "25 * 4 = ?" }, image] });
await agent.runAgent();
console.log(JSON.stringify(agent.messages));
