#include <map>

#include "weights/common/dtype_facts.h"
#include "weights/torch/save_writer.h"

namespace posenc::io {
namespace {

// Null for dtypes newer than typed storages, which are saved by name.
const char* storage_class(ManifestDtype dtype) {
  const DtypeFacts& facts = facts_of(dtype);
  return facts.is_saved_by_class ? facts.storage_class : nullptr;
}

class Pickler {
 public:
  Pickler() { bytes_ = "\x80\x02"; }

  void tensor(const PickledTensor& tensor) {
    const char* typed = storage_class(tensor.dtype);
    global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    bytes_ += '(';
    storage(tensor, typed);
    number(tensor.offset);
    numbers(tensor.sizes);
    numbers(tensor.strides);
    bytes_ += '\x89';  // requires_grad: False
    empty_dict();      // no hooks
    if (!typed) global("torch", dtype_name(tensor.dtype));
    bytes_ += "tR";
  }

  void text(const std::string& text) {
    bytes_ += 'X';
    fixed(text.size(), 4);
    bytes_ += text;
  }

  void empty_dict() {
    global("collections", "OrderedDict");
    bytes_ += ")R";
  }

  void mark() { bytes_ += '('; }
  std::string finish() { return bytes_ + "u."; }

 private:
  // A persistent id: ("storage", class, key, location, elements).
  void storage(const PickledTensor& tensor, const char* typed) {
    bytes_ += '(';
    text("storage");
    typed ? global("torch", typed) : global("torch.storage", "UntypedStorage");
    text(std::to_string(tensor.record));
    text("cpu");
    number(typed ? tensor.record_elements : tensor.record_elements * item_size(tensor.dtype));
    bytes_ += "tQ";
  }

  // A name; from the second time on, a reference to it in the memo.
  void global(const std::string& module, const std::string& name) {
    const auto [at, fresh] = memo_.emplace(module + '\n' + name + '\n', memo_.size());
    bytes_ += fresh ? "c" + at->first + "q" : "h";
    fixed(at->second, 1);
  }

  void numbers(const std::vector<int64_t>& values) {
    if (values.empty()) {
      bytes_ += ')';
      return;
    }
    bytes_ += '(';
    for (const int64_t value : values) number(value);
    bytes_ += 't';
  }

  void number(int64_t value) {
    const auto bits = static_cast<uint64_t>(value);
    if (bits < 0x100) {
      bytes_ += 'K';
      fixed(bits, 1);
    } else if (bits < 0x80000000) {
      bytes_ += 'J';
      fixed(bits, 4);
    } else {
      bytes_ += "\x8a\x08";
      fixed(bits, 8);
    }
  }

  void fixed(uint64_t value, unsigned width) {
    for (unsigned i = 0; i < width; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  }

  std::string bytes_;
  std::map<std::string, std::size_t> memo_;
};

}  // namespace

std::string pickle_tensors(const std::vector<PickledTensor>& tensors) {
  Pickler pickler;
  pickler.empty_dict();
  pickler.mark();
  for (const auto& tensor : tensors) {
    pickler.text(tensor.name);
    pickler.tensor(tensor);
  }
  return pickler.finish();
}

}  // namespace posenc::io
