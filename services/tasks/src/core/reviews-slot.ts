import type { ResultReviews } from "./reviews-port.ts";

/** Forwards calls to the module that provides the reviews of results, once that module is open. */
export class ReviewsSlot implements ResultReviews {
  #provided: ResultReviews | undefined;

  provide(reviews: ResultReviews): void {
    this.#provided = reviews;
  }

  listen: ResultReviews["listen"] = (listener) => this.#reviews.listen(listener);
  deciding: ResultReviews["deciding"] = (...args) => this.#reviews.deciding(...args);
  isEscalated: ResultReviews["isEscalated"] = (...args) => this.#reviews.isEscalated(...args);
  decide: ResultReviews["decide"] = (...args) => this.#reviews.decide(...args);
  inquire: ResultReviews["inquire"] = (...args) => this.#reviews.inquire(...args);
  noteInquiry: ResultReviews["noteInquiry"] = (...args) => this.#reviews.noteInquiry(...args);
  noteAnswer: ResultReviews["noteAnswer"] = (...args) => this.#reviews.noteAnswer(...args);

  get #reviews(): ResultReviews {
    if (this.#provided === undefined) throw new Error("no module provides the reviews of held results");
    return this.#provided;
  }
}
