/** Positions on a logarithmic axis. */
export interface LogScale {
  (value: number): number;
  at(position: number): number;
  readonly least: number;
  readonly most: number;
}

/** Values up to `least` are at `from`. */
export function logScale(least: number, most: number, from: number, to: number): LogScale {
  const span = Math.log(most / least);
  const position = (value: number): number => from + ((to - from) * Math.log(Math.max(least, value) / least)) / span;
  return Object.assign(position, { at: (x: number) => least * Math.exp(((x - from) / (to - from)) * span), least, most });
}

/** Round values on a logarithmic axis: 1, 2, 5, 10, … or only powers of ten where there is little room. */
export function logTicks({ least, most }: LogScale, room: number): number[] {
  const decades = Math.log10(most / least);
  const steps = room / decades > 150 ? [1, 2, 5] : [1];
  const every = room / decades < 45 ? Math.ceil(45 / (room / decades)) : 1;
  const ticks: number[] = [];
  for (let power = 0; 10 ** power <= most; power++) {
    if (power % every === 0) ticks.push(...steps.map((step) => step * 10 ** power).filter((tick) => tick >= least && tick <= most));
  }
  return ticks;
}

/** A few round values from 0 on a linear axis. */
export function linearTicks(most: number): number[] {
  const rough = Math.max(1, most) / 2;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, ([5, 2].find((factor) => factor * unit <= rough) ?? 1) * unit);
  const ticks: number[] = [];
  for (let tick = 0; tick <= most; tick += step) ticks.push(tick);
  return ticks;
}

/** Upper ends of the bins of a histogram over a logarithmic axis, up to `most`. A bin holds what is above the end before it. */
export function binEnds(most: number): number[] {
  const ends = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
  for (let unit = 10; (ends.at(-1) as number) < most; unit *= 10) {
    for (const factor of [1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8, 10])
      if ((ends.at(-1) as number) < most) ends.push(Math.round(factor * unit));
  }
  return ends;
}
