import { ConfigurableModuleBuilder, type ConfigurableModuleCls, Global, Module } from "@nestjs/common";
import { DiscoveryModule, DiscoveryService } from "@nestjs/core";
import { Floodgate, type FloodgateModuleOptions } from "./floodgate.js";

const builder = new ConfigurableModuleBuilder<FloodgateModuleOptions>().setClassMethodName("forRoot").build();
const Base: ConfigurableModuleCls<FloodgateModuleOptions, "forRoot"> = builder.ConfigurableModuleClass;

/**
 * Makes the limits of an app: `FloodgateModule.forRoot({ limit: 100, window: "1m" })`, or `forRootAsync` with a factory, whose dependencies
 * may be a store or rules. A `FloodgateGuard` applies them. Every module can inject `Floodgate`.
 */
export class FloodgateModule extends Base {}

const inject = [builder.MODULE_OPTIONS_TOKEN, DiscoveryService];
const useFactory = (options: FloodgateModuleOptions, discovery: DiscoveryService): Floodgate => new Floodgate(options, discovery);
Global()(FloodgateModule);
Module({ imports: [DiscoveryModule], providers: [{ provide: Floodgate, useFactory, inject }], exports: [Floodgate] })(FloodgateModule);
