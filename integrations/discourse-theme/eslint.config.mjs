import discourse from "@discourse/lint-configs/eslint-theme";

export default [...discourse];
