#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace posenc::testing {

/// Runs `work` in a child process and returns its exit status.
template <typename Work>
int in_child(Work&& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace posenc::testing
