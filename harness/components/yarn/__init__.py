"""YARN: ResourceManager and NodeManager of our own, an application submitted in cluster mode, and its attempts.

settings       the settings of the daemons and of `spark-submit`
cluster        ResourceManager and NodeManager as child processes
rest_api       what ResourceManager says of an application, and how to end one
containers     the processes of an application's containers
submission     `spark-submit --master yarn --deploy-mode cluster`
attempt        one attempt: an ApplicationMaster's container, as a driver
stack          what is known of the stack `yarn`
yarn_stack     what runs it
fault          what is done to the daemons
"""
