/** A program to be killed: the tasks service on the folder that it is given; prints its address. */
import { writeSync } from "node:fs";
import { Fakes } from "./fakes.ts";
import { hostTasks } from "./platform.ts";

const [dataDir = ""] = process.argv.slice(2);
const { url } = await hostTasks(new Fakes(), dataDir);
writeSync(1, `${new URL(url).host}\n`);
