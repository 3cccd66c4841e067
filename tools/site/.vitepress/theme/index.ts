import "./style.css";

// Without fonts of its own: the reader's system has some.
export { default } from "vitepress/theme-without-fonts";
