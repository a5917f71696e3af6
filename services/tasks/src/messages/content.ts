import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Attachment, AttachmentSchema } from "@depute/contracts/cap/v1/attachment_pb";
import { encode } from "@depute/wire";

/** Words and attachments as the engine keeps inputs and outputs. */
export function contentValue(content: string, attachments: readonly Attachment[]) {
  return fromJson(ValueSchema, {
    content,
    attachments: attachments.map((attachment) => encode(AttachmentSchema, attachment)),
  });
}
