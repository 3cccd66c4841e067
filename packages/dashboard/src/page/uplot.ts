// The types of uPlot. The server answers uPlot's own module at this address.
export { default } from "uplot";
