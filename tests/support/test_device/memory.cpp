#include "support/test_device/memory.h"

#include <ATen/ops/from_blob.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>

namespace posenc::testing {
namespace {

struct Block {
  std::size_t bytes = 0;
  int users = 0;
};

std::mutex& block_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::map<const void*, Block>& blocks() {
  static auto* const all = new std::map<const void*, Block>();  // outlives static tensors
  return *all;
}

void protect(const void* block, std::size_t bytes, int access) {
  TORCH_CHECK(mprotect(const_cast<void*>(block), bytes, access) == 0,
              "[test device] mprotect failed");
}

void release(void* block) {
  const std::lock_guard<std::mutex> lock(block_mutex());
  const auto found = blocks().find(block);
  munmap(block, found->second.bytes);
  blocks().erase(found);
}

class Allocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device device(c10::DeviceType::PrivateUse1, 0);
    if (bytes == 0) return {nullptr, device};
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t whole = (bytes + page - 1) / page * page;
    void* const block = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TORCH_CHECK(block != MAP_FAILED, "[test device] out of memory: ", bytes, " bytes");
    const std::lock_guard<std::mutex> lock(block_mutex());
    blocks()[block] = {whole, 0};
    return {block, block, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

c10::Allocator* device_allocator() {
  static Allocator allocator;
  return &allocator;
}

HostAccess::HostAccess(std::initializer_list<at::Tensor> tensors) {
  const std::lock_guard<std::mutex> lock(block_mutex());
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_privateuseone()) continue;
    const auto found = blocks().find(tensor.storage().data());
    if (found == blocks().end()) continue;  // an empty tensor
    auto& [block, state] = *found;
    if (state.users++ == 0) protect(block, state.bytes, PROT_READ | PROT_WRITE);
    blocks_.push_back(block);
  }
}

HostAccess::~HostAccess() {
  const std::lock_guard<std::mutex> lock(block_mutex());
  for (const void* block : blocks_) {
    Block& state = blocks().at(block);
    if (--state.users == 0) protect(block, state.bytes, PROT_NONE);
  }
}

at::Tensor on_host(const at::Tensor& tensor) {
  if (!tensor.is_privateuseone()) return tensor;
  auto* const storage = static_cast<char*>(tensor.storage().mutable_data());
  const auto offset = static_cast<std::size_t>(tensor.storage_offset()) * tensor.element_size();
  at::Tensor host = at::from_blob(storage + offset, tensor.sizes(), tensor.strides(),
                                  at::TensorOptions(tensor.scalar_type()));
  host._set_conj(tensor.is_conj());
  host._set_neg(tensor.is_neg());
  return host;
}

}  // namespace posenc::testing
