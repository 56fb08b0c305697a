#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace posenc::text {

/// Memory that calls need, kept for the next ones; one for each thread at a time.
template <typename Workspace>
class Workspaces {
 public:
  /// Holds one as long as it lives.
  class Lease {
   public:
    /// `make` makes one where none is free.
    template <typename Make>
    Lease(Workspaces& all, Make&& make) : all_(all), workspace_(all.take()) {
      if (!workspace_) workspace_ = make();
    }
    ~Lease() {
      const std::lock_guard lock(all_.mutex_);
      all_.free_.push_back(std::move(workspace_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    Workspace& operator*() { return *workspace_; }

   private:
    Workspaces& all_;
    std::unique_ptr<Workspace> workspace_;
  };

 private:
  std::unique_ptr<Workspace> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return nullptr;
    std::unique_ptr<Workspace> taken = std::move(free_.back());
    free_.pop_back();
    return taken;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> free_;
};

}  // namespace posenc::text
