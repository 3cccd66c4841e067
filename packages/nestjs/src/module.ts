import { ConfigurableModuleBuilder, type ConfigurableModuleCls, Global, Module } from "@nestjs/common";
import { DiscoveryModule, DiscoveryService, MetadataScanner } from "@nestjs/core";
import { Floodgate, type FloodgateModuleOptions } from "./floodgate.js";

const builder = new ConfigurableModuleBuilder<FloodgateModuleOptions>().setClassMethodName("forRoot").build();
const Base: ConfigurableModuleCls<FloodgateModuleOptions, "forRoot"> = builder.ConfigurableModuleClass;

/**
 * Makes the limits of an app: `FloodgateModule.forRoot({ limit: 100, window: "1m" })`, or `forRootAsync` with a factory, whose dependencies
 * may be a store or rules. A `FloodgateGuard` applies them. Every module can inject `Floodgate`.
 */
export class FloodgateModule extends Base {}

Global()(FloodgateModule);
Module({
  imports: [DiscoveryModule],
  providers: [
    {
      provide: Floodgate,
      useFactory: (options: FloodgateModuleOptions, discovery: DiscoveryService, scanner: MetadataScanner) =>
        new Floodgate(options, discovery, scanner),
      inject: [builder.MODULE_OPTIONS_TOKEN, DiscoveryService, MetadataScanner],
    },
  ],
  exports: [Floodgate],
})(FloodgateModule);
