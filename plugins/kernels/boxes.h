/*
 * kernels/boxes.h - what the host does with a box before a kernel gets it.
 */
#ifndef K_BOXES_H
#define K_BOXES_H

#include "kernels.h"

/* Makes a box ready for k_copy_boxes(), or with `fill` for k_fill_boxes(), which ignores
 * the places of the source: drops dimensions of one element, orders the others by their
 * strides, joins those that follow each other without a gap, and divides the box into
 * units of work. In: n, dst_at, src_at, ndim, item_bytes, swap_bytes, and `ndim` entries
 * of shape, dst, src. Out: these and the rest. An empty box gets no units. Call it once
 * for a box. Thread class: any thread. */
void kernels_box_ready(struct k_box *box, int fill);

/* How many work items are best for a box that is ready; a multiple of 64. A launch has
 * the same number for all its boxes: the largest of these. Thread class: any thread. */
uint64_t kernels_box_items(const struct k_box *box);

#endif
