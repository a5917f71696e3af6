import { type ReactNode, useId, useLayoutEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
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

/**
 * A dialog that asks for confirmation before an action. It shows the action's consequences and input fields. The browser's
 * own modal dialog keeps the focus inside and closes on Escape or a click outside.
 */
export function Ask({ title, children, act, isDangerous, isDisabled = false, onAct, onClose }: AskProps) {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    // An open dialog that leaves the document would not give the focus back.
    return () => shown?.close();
  }, []);
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
  // At the end of the body, no form or rule of style of the page is around the dialog.
  return createPortal(
    <dialog ref={dialog} className="modal" aria-labelledby={titleId} closedby="any" onClose={onClose}>
      <form
        className="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          void submit(new FormData(event.currentTarget));
        }}
      >
        <h2 id={titleId}>{title}</h2>
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
    </dialog>,
    document.body,
  );
}
