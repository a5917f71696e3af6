/** A program to be killed: the tasks service on the folder that it is given; prints its address. */
import { writeSync } from "node:fs";
import { Fakes } from "./fakes.ts";
import { hostTasks } from "./platform.ts";

const [dataDir = ""] = process.argv.slice(2);
const { address } = await hostTasks(dataDir, new Fakes());
writeSync(1, `${address}\n`);
