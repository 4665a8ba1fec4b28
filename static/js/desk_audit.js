// The audit, in the visitor's time zone.
import { localise, reopenedInZone } from "./desk_zone.js";

if (!reopenedInZone()) localise();
