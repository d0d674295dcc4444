// Prepares the parts of a long list when they become visible; the first part immediately, for the first picture.

export class LazyParts {
  private observer: IntersectionObserver | null = null;

  /** `scroller`: the scrolling element. `prepare`: called once for each part, before it is visible. */
  constructor(
    private readonly scroller: HTMLElement,
    private readonly prepare: (part: HTMLElement) => void,
  ) {}

  /** Watches these parts from now on, instead of the previous ones. */
  watch(parts: readonly HTMLElement[]): void {
    this.stop();
    const [first, ...others] = parts;
    if (first !== undefined) this.prepare(first);
    if (others.length === 0) return;
    const observer = new IntersectionObserver((entries) => this.onSeen(entries), {
      root: this.scroller,
      rootMargin: "400px",
    });
    for (const part of others) observer.observe(part);
    this.observer = observer;
  }

  private onSeen(entries: readonly IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      this.observer?.unobserve(target);
      this.prepare(target as HTMLElement);
    }
  }

  stop(): void {
    this.observer?.disconnect();
    this.observer = null;
  }
}
