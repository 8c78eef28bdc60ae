// SPDX-License-Identifier: Apache-2.0
// A page of a mapped file that cannot be read, because the file was cut or its disk failed, ends
// the process by SIGBUS. This makes that a line on stderr and status 1. Called once, in main.
//
//   EndOnUnreadablePages();
//   ... map a model and read it
#ifndef SETU_COMMON_BASE_MAPPED_PAGES_H_
#define SETU_COMMON_BASE_MAPPED_PAGES_H_

namespace setu {

void EndOnUnreadablePages();

}  // namespace setu

#endif  // SETU_COMMON_BASE_MAPPED_PAGES_H_
