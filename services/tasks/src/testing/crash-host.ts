/**
 * The tasks service as a program that a test kills. The argument is the data folder. The program prints the service's
 * address.
 */
import { writeSync } from "node:fs";
import { Fakes } from "./fakes.ts";
import { hostTasks } from "./platform.ts";

const [dataDir = ""] = process.argv.slice(2);
const { url } = await hostTasks(new Fakes(), dataDir);
writeSync(1, `${new URL(url).host}\n`);
