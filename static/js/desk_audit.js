// The audit, its days counted in the visitor's time zone.
import { reopenedInZone } from "./desk_zone.js";

reopenedInZone();
