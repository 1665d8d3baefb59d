// Placeholder of a new checkout: replaced by the room's first real file.
