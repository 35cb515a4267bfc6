"""YARN: ResourceManager and NodeManager of our own, an application submitted in cluster mode, and its attempts.

settings       what the daemons and `spark-submit` are told
cluster        ResourceManager and NodeManager as child processes
asking         what ResourceManager says of an application, and its end
containers     the processes of an application's containers
submission     `spark-submit --master yarn --deploy-mode cluster`
attempt        one attempt: an ApplicationMaster's container, as a driver
stack          what is known of the stack `yarn`
yarn_stack     what runs it
fault          what is done to the daemons
"""
