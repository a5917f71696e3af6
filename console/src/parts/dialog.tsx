import { type ReactNode, useState } from "react";
import { Dialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import { Refused } from "./states.tsx";

interface AskProps {
  readonly title: string;
  /** The consequences of the action, and the input fields. */
  readonly children: ReactNode;
  /** The label of the button that runs the action. */
  readonly act: string;
  readonly isDangerous?: boolean;
  readonly isDisabled?: boolean;
  /** Runs the action. If it succeeds, the dialog closes. If it fails, the dialog stays open and shows the error. */
  readonly onAct: (form: FormData) => Promise<unknown>;
  readonly onClose: () => void;
}

/** A dialog that asks for confirmation before an action. It shows the action's consequences and input fields. */
export function Ask({ title, children, act, isDangerous, isDisabled = false, onAct, onClose }: AskProps) {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (form: FormData) => {
    setBusy(true);
    setError(undefined);
    try {
      await onAct(form);
      onClose();
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(false);
    }
  };
  return (
    <ModalOverlay className="overlay" isOpen isDismissable onOpenChange={onClose}>
      <Modal className="modal">
        <Dialog className="dialog">
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void submit(new FormData(event.currentTarget));
            }}
          >
            <Heading slot="title" level={2}>
              {title}
            </Heading>
            <div className="dialog-body">{children}</div>
            {error !== undefined && <Refused error={error} />}
            <div className="row end">
              <button type="button" className="button" onClick={onClose}>
                Close
              </button>
              <button
                type="submit"
                className={`button ${isDangerous === true ? "danger" : "primary"}`}
                disabled={isBusy || isDisabled}
              >
                {act}
              </button>
            </div>
          </form>
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}
