import {
  type DescExtension,
  type DescFile,
  type DescService,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { Code } from "@connectrpc/connect";
import { file_depute_errors_v1_error_reason } from "@depute/contracts/depute/errors/v1/error_reason_pb";
import { file_google_rpc_error_details } from "@depute/contracts/google/rpc/error_details_pb";
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponseSchema,
} from "@depute/contracts/grpc/reflection/v1/reflection_pb";
import { ServerReflection as ServerReflectionAlpha } from "@depute/contracts/grpc/reflection/v1alpha/reflection_pb";

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

/** The descriptors in which reflection looks up names. */
interface Index {
  services: string[];
  byName: Map<string, DescFile>;
  bySymbol: Map<string, DescFile>;
  extensions: Map<string, Map<number, DescFile>>;
}

/** Registers gRPC server reflection in version v1, and in v1alpha for old tools. */
export function registerReflection(router: ConnectRouter, services: readonly DescService[]): void {
  const listedServices = [...services, ServerReflection, ServerReflectionAlpha];
  const implementation = reflectionService(listedServices, ERRORS);
  router.service(ServerReflection, implementation);
  // Reflection v1 and v1alpha differ only in the name of their package, so one implementation serves both.
  router.service(
    ServerReflectionAlpha,
    implementation as unknown as ServiceImpl<typeof ServerReflectionAlpha>,
  );
}

/** Files that no service's file imports: the details of errors, and their reasons. */
const ERRORS = [file_google_rpc_error_details, file_depute_errors_v1_error_reason];

/**
 * Implements reflection for the given services, and for all files that the files of these services import.
 *
 * @param more additional files
 */
export function reflectionService(
  services: readonly DescService[],
  more: readonly DescFile[] = [],
): ServiceImpl<typeof ServerReflection> {
  const index = indexOf(services, more);
  return {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield { validHost: request.host, originalRequest: request, messageResponse: answer(index, request) };
      }
    },
  };
}

function answer(index: Index, { messageRequest: ask }: ServerReflectionRequest): Answer {
  switch (ask.case) {
    case "listServices":
      return {
        case: "listServicesResponse",
        value: { service: index.services.map((name) => ({ name })) },
      };
    case "fileByFilename":
      return files(index.byName.get(ask.value), ask.value);
    case "fileContainingSymbol":
      return files(index.bySymbol.get(ask.value), ask.value);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = ask.value;
      const file = index.extensions.get(containingType)?.get(extensionNumber);
      return files(file, `${containingType} extension ${extensionNumber}`);
    }
    case "allExtensionNumbersOfType": {
      const numbers = index.extensions.get(ask.value);
      if (numbers === undefined && !index.bySymbol.has(ask.value)) return notFound(ask.value);
      return {
        case: "allExtensionNumbersResponse",
        value: { baseTypeName: ask.value, extensionNumber: [...(numbers?.keys() ?? [])] },
      };
    }
    default:
      return error(Code.InvalidArgument, "the request is empty; set one member of message_request");
  }
}

/** Returns a file with all its imports, so that a client can build the file's descriptors from one response. */
function files(file: DescFile | undefined, requestedName: string): Answer {
  if (file === undefined) return notFound(requestedName);
  const filesByName = new Map<string, DescFile>();
  collect(file, filesByName);
  const fileDescriptorProto = [...filesByName.values()].map((each) =>
    toBinary(FileDescriptorProtoSchema, each.proto),
  );
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function notFound(requestedName: string): Answer {
  return error(Code.NotFound, `not found: ${requestedName.slice(0, 200)}`);
}

function error(errorCode: Code, errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode: errorCode as number, errorMessage } };
}

function collect(file: DescFile, into: Map<string, DescFile>): void {
  const name = file.proto.name;
  if (into.has(name)) return;
  into.set(name, file);
  for (const dependency of file.dependencies) collect(dependency, into);
}

function indexOf(services: readonly DescService[], more: readonly DescFile[]): Index {
  const byName = new Map<string, DescFile>();
  for (const file of [...services.map((service) => service.file), ...more]) collect(file, byName);
  const index: Index = {
    services: services.map((service) => service.typeName).toSorted(),
    byName,
    bySymbol: new Map(),
    extensions: new Map(),
  };
  for (const file of byName.values()) addSymbols(index, file);
  return index;
}

function addSymbols({ bySymbol, extensions }: Index, file: DescFile): void {
  const add = (symbol: string) => bySymbol.set(symbol, file);
  const addExtension = (extension: DescExtension) => {
    add(extension.typeName);
    const numbers = extensions.get(extension.extendee.typeName) ?? new Map<number, DescFile>();
    extensions.set(extension.extendee.typeName, numbers.set(extension.number, file));
  };
  const addMessage = (message: DescFile["messages"][number]) => {
    add(message.typeName);
    for (const field of message.fields) add(`${message.typeName}.${field.name}`);
    for (const each of message.nestedEnums) add(each.typeName);
    for (const each of message.nestedExtensions) addExtension(each);
    for (const each of message.nestedMessages) addMessage(each);
  };
  for (const each of file.messages) addMessage(each);
  for (const each of file.enums) add(each.typeName);
  for (const each of file.extensions) addExtension(each);
  for (const service of file.services) {
    add(service.typeName);
    for (const method of service.methods) add(`${service.typeName}.${method.name}`);
  }
}
