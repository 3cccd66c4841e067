/** The size of the picture of a state, in CSS pixels. */
export const pictureWidth = 168;
export const pictureHeight = 76;
