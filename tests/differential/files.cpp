#include "differential/ops.h"
#include "posenc/weights/load.h"
#include "posenc/weights/save.h"

namespace posenc::differential {

// Reads `from` and writes `to`, in the format given by its extension.
Ops file_ops() {
  return {{"save", [](const Json& options, const StateDict&) {
             save_tensors(options.at("to"), load_tensors(options.at("from")));
             return StateDict();
           }}};
}

}  // namespace posenc::differential
