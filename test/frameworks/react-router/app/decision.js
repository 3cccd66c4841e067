import { createContext } from "react-router";

export const decisionContext = createContext();
